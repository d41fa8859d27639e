-- Who somebody is, is asked at each sign-in through an identity provider.
CREATE INDEX directory_users_subject ON directory_users (subject);
