-- What was left out of a repository or a version of a skill, or read otherwise than it is written: JSON lists of sentences.
ALTER TABLE skill_repository_facts ADD COLUMN warnings TEXT NOT NULL DEFAULT '[]';
ALTER TABLE skill_versions ADD COLUMN warnings TEXT NOT NULL DEFAULT '[]';
-- The rules by which the skills of a repository were listed. 0: those of an earlier release.
ALTER TABLE skill_repository_facts ADD COLUMN listing BIGINT NOT NULL DEFAULT 0;
-- Number of the skills: a list of repositories does not read them. Each begins with its path, and a text has no quote that is not escaped.
ALTER TABLE skill_repository_facts ADD COLUMN skill_count BIGINT NOT NULL DEFAULT 0;
UPDATE skill_repository_facts SET skill_count = (length(skills) - length(replace(skills, '{"path":', ''))) / 8;
