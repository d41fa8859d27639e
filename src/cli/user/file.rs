//! Files of users to create: CSV with a header, or one name a line.

use std::collections::HashMap;

use csv::{ReaderBuilder, StringRecord};
use schema::ids::{PlainName, UserName};
use secrecy::{ExposeSecret, SecretString};

use super::super::output::cell::counted;

/// Columns of a file, in any order; the first is required.
pub const COLUMNS: [&str; 4] = ["username", "password", "image", "groups"];
/// Most users of one file.
const MOST: usize = 10_000;
/// Problems that a message lists.
const LISTED: usize = 50;

/// A user to create.
#[derive(Debug, Clone)]
pub struct NewUser {
    /// The line that names the user; 0 on the command line.
    pub line: u64,
    /// Name of the account.
    pub name: UserName,
    /// Password; `None`: the server generates one.
    pub password: Option<SecretString>,
    /// Tag of the image; `None`: the configured one.
    pub image: Option<String>,
    /// Groups, in the order given.
    pub groups: Vec<PlainName>,
}

impl NewUser {
    /// A user with a name only.
    pub fn new(name: UserName) -> Self {
        Self {
            line: 0,
            name,
            password: None,
            image: None,
            groups: Vec::new(),
        }
    }
}

/// Problems of a file by line. Their texts never repeat a cell that may be a password.
#[derive(Debug, Default)]
pub struct Problems(Vec<(u64, String)>);

impl Problems {
    /// Notes a problem of a line.
    pub fn add(&mut self, line: u64, text: impl Into<String>) {
        self.0.push((line, text.into()));
    }

    /// Returns the problems as lines of text, or `None` without any.
    pub fn describe(&self) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        let mut sorted: Vec<&(u64, String)> = self.0.iter().collect();
        sorted.sort_by_key(|(line, _)| *line);
        let listed = sorted.iter().take(LISTED);
        let mut lines: Vec<String> = listed
            .map(|(line, text)| format!("line {line}: {text}"))
            .collect();
        if let Some(more @ 1..) = self.0.len().checked_sub(LISTED) {
            lines.push(format!("and {}", counted(more as u64, "more problem")));
        }
        Some(lines.join("\n"))
    }
}

/// Reads the users of a file and notes what is wrong with each line.
pub fn parse(text: &str, problems: &mut Problems) -> Vec<NewUser> {
    // Spreadsheets begin their files with a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(text.as_bytes());
    let mut columns: Option<Columns> = None;
    let (mut users, mut seen) = (Vec::new(), HashMap::new());
    let mut is_first = true;
    for record in reader.records() {
        let record = match record {
            Ok(record) => record,
            Err(error) => {
                let line = error.position().map_or(0, csv::Position::line);
                problems.add(line, "cannot be read as CSV");
                continue;
            }
        };
        let line = line_of(&record, text);
        if record.iter().all(|cell| cell.trim().is_empty()) {
            continue;
        }
        if std::mem::take(&mut is_first) && is_header(&record) {
            match Columns::read(&record) {
                Ok(read) => columns = Some(read),
                Err(problem) => {
                    problems.add(line, problem);
                    return Vec::new();
                }
            }
            continue;
        }
        let Some(mut user) = read_user(&record, line, columns.as_ref(), problems) else {
            continue;
        };
        user.line = line;
        if let Some(earlier) = seen.insert(user.name.key(), line) {
            let name = &user.name;
            problems.add(line, format!("{name} is on line {earlier} already"));
            continue;
        }
        users.push(user);
        if users.len() > MOST {
            problems.add(
                line,
                format!("more than {MOST} users; split the file into several"),
            );
            break;
        }
    }
    users
}

/// Line of a record. The position is where the record before ended, in front of its line feed and of empty lines.
fn line_of(record: &StringRecord, text: &str) -> u64 {
    let Some(position) = record.position() else {
        return 0;
    };
    let before = usize::try_from(position.byte()).ok();
    let rest = before.and_then(|byte| text.as_bytes().get(byte..));
    let blank = rest.into_iter().flatten();
    let blank = blank.take_while(|byte| matches!(byte, b'\r' | b'\n'));
    position.line() + blank.filter(|byte| **byte == b'\n').count() as u64
}

/// Returns true for a line that names at least one column.
fn is_header(record: &StringRecord) -> bool {
    let mut cells = record.iter();
    cells.any(|cell| {
        let cell = cell.trim().to_ascii_lowercase();
        // A spreadsheet of another language separates by semicolons.
        let first = cell.split([';', '\t']).next().unwrap_or_default();
        COLUMNS.contains(&first)
    })
}

/// Positions of the columns in a line.
struct Columns {
    count: usize,
    at: [Option<usize>; COLUMNS.len()],
}

impl Columns {
    fn read(header: &StringRecord) -> Result<Self, String> {
        let mut at = [None; COLUMNS.len()];
        for (index, title) in header.iter().enumerate() {
            let title = title.trim().to_ascii_lowercase();
            let found = COLUMNS.iter().position(|column| *column == title);
            let slot = found.and_then(|column| at.get_mut(column));
            match slot {
                Some(slot @ None) => *slot = Some(index),
                Some(Some(_)) => return Err(format!("the column {title} occurs twice")),
                None => {
                    return Err(format!(
                        "unknown column {title:?}; columns are {}, separated by commas",
                        COLUMNS.join(", ")
                    ));
                }
            }
        }
        if at[0].is_none() {
            return Err("no column username".to_owned());
        }
        Ok(Self {
            count: header.len(),
            at,
        })
    }

    /// Cells of a line in the order of [`COLUMNS`]; a cell that is left out at the end is empty.
    fn cells<'a>(&self, record: &'a StringRecord) -> [&'a str; COLUMNS.len()] {
        self.at.map(|index| {
            index
                .and_then(|index| record.get(index))
                .unwrap_or_default()
        })
    }
}

/// Reads one line; `None` when it is not usable, which is noted.
fn read_user(
    record: &StringRecord,
    line: u64,
    columns: Option<&Columns>,
    problems: &mut Problems,
) -> Option<NewUser> {
    let cells = match columns {
        Some(columns) if record.len() > columns.count => {
            let count = counted(columns.count as u64, "column");
            let text = format!(
                "{} cells, but the header has {count}; a cell with a comma is put in quotes",
                record.len()
            );
            problems.add(line, text);
            return None;
        }
        Some(columns) => columns.cells(record),
        None if record.len() > 1 => {
            let text = format!(
                "a comma, but the file has no header; begin it with the line {}",
                COLUMNS.join(",")
            );
            problems.add(line, text);
            return None;
        }
        None => [record.get(0).unwrap_or_default(), "", "", ""],
    };
    if cells.iter().any(|cell| cell.contains(['\n', '\r'])) {
        problems.add(
            line,
            "a cell goes over several lines; its quote is not closed",
        );
        return None;
    }
    let [name, password, image, groups] = cells;
    let name = match name.trim().parse::<UserName>() {
        Ok(name) => Some(name),
        Err(rule) => {
            problems.add(line, rule.to_string());
            None
        }
    };
    let password = (!password.is_empty()).then(|| SecretString::from(password));
    if let Some(broken) = password.as_ref().and_then(find_password_problem) {
        problems.add(line, broken);
    }
    let image = Some(image.trim()).filter(|image| !image.is_empty());
    if let Some(broken) = image.and_then(find_image_problem) {
        problems.add(line, broken);
    }
    let mut read = Vec::new();
    let listed = groups.split([';', ',']).map(str::trim);
    for group in listed.filter(|group| !group.is_empty()) {
        match group.parse() {
            Ok(group) if !read.contains(&group) => read.push(group),
            Ok(_) => {}
            Err(rule) => problems.add(line, format!("groups: {rule}")),
        }
    }
    Some(NewUser {
        line,
        name: name?,
        password,
        image: image.map(str::to_owned),
        groups: read,
    })
}

fn find_password_problem(password: &SecretString) -> Option<String> {
    if password.expose_secret().trim().is_empty() {
        return Some("the password is blank; leave the cell empty for a generated one".to_owned());
    }
    let checked = api::auth::password::check_rules("password", password);
    checked.err().map(|error| error.to_string())
}

/// Says what keeps a text from being a tag of the configured image.
pub fn find_image_problem(image: &str) -> Option<String> {
    image.contains([':', '/', '@']).then(|| {
        "the image is a tag of image.name, such as 1.2.3; `rollout start` moves users to other images".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Vec<NewUser>, String) {
        let mut problems = Problems::default();
        let users = parse(text, &mut problems);
        (users, problems.describe().unwrap_or_default())
    }

    /// `line name password image groups` of each user.
    fn shown(users: &[NewUser]) -> Vec<String> {
        let show = |user: &NewUser| {
            let password = user.password.as_ref().map(ExposeSecret::expose_secret);
            let groups: Vec<&str> = user.groups.iter().map(PlainName::as_str).collect();
            let image = user.image.as_deref().unwrap_or("-");
            format!(
                "{} {} {} {image} {}",
                user.line,
                user.name,
                password.unwrap_or("-"),
                groups.join("+")
            )
        };
        users.iter().map(show).collect()
    }

    #[test]
    fn files_of_both_forms_are_read() {
        let full = "1 alice - - ";
        for (text, expected) in [
            ("alice\nbob\n", vec![full, "2 bob - - "]),
            ("\n  alice  \r\n\r\nbob", vec!["2 alice - - ", "4 bob - - "]),
            ("\u{feff}username\nalice\n", vec!["2 alice - - "]),
            (
                "username,password,image,groups\nalice,correct horse,1.2,dev;ops\nbob,,,\ncarol\n",
                vec![
                    "2 alice correct horse 1.2 dev+ops",
                    "3 bob - - ",
                    "4 carol - - ",
                ],
            ),
            (
                "Groups, Username\n\"dev, ops,dev\",alice\n,bob\n",
                vec!["2 alice - - dev+ops", "3 bob - - "],
            ),
            (
                "username,password\nalice,\"a \"\"quoted\"\", one \"\n",
                vec!["2 alice a \"quoted\", one  - "],
            ),
            (
                "username,groups\r\n\r\nalice,\r\nbob,dev\r\n",
                vec!["3 alice - - ", "4 bob - - dev"],
            ),
            ("", vec![]),
            ("username,password\n", vec![]),
        ] {
            let (users, problems) = read(text);
            assert_eq!(problems, "", "{text:?}");
            assert_eq!(shown(&users), expected, "{text:?}");
        }
    }

    #[test]
    fn bad_lines_are_named_and_passwords_are_not_shown() {
        for (text, parts) in [
            (
                "alice\nb c\n-d\n",
                vec!["line 2: a user name", "line 3: a user name"],
            ),
            ("alice\nAlice\n", vec!["line 2: Alice is on line 1 already"]),
            (
                "alice,hunter22\n",
                vec!["line 1: a comma", "username,password"],
            ),
            (
                "username;password\nalice;hunter22\n",
                vec!["line 1: unknown column", "commas"],
            ),
            (
                "username,mail\nalice,hunter22\n",
                vec!["line 1: unknown column \"mail\""],
            ),
            (
                "username,username\n",
                vec!["line 1: the column username occurs twice"],
            ),
            (
                "password,image\nhunter22,1\n",
                vec!["line 1: no column username"],
            ),
            (
                "username,password\nalice,hunter22,x\n",
                vec!["line 2: 3 cells", "2 columns"],
            ),
            (
                "username,password\nalice,hunter\n",
                vec!["line 2: ", "at least 8 characters"],
            ),
            (
                "username,password\nalice,        \n",
                vec!["line 2: the password is blank"],
            ),
            (
                "username,password\nal ice,hunter22\n",
                vec!["line 2: a user name"],
            ),
            (
                "username,password\nalice,\"hunter22\nbob,x\n",
                vec!["line 2: a cell goes over"],
            ),
            (
                "username,image\nalice,echo:2\n",
                vec!["line 2: the image is a tag"],
            ),
            (
                "username,groups\nalice,a/b;.\n",
                vec!["line 2: groups: a name has"],
            ),
        ] {
            let (_, problems) = read(text);
            for part in parts {
                assert!(problems.contains(part), "{text:?}: {problems}");
            }
            assert!(!problems.contains("hunter"), "{text:?}: {problems}");
        }
    }

    #[test]
    fn problems_are_listed_in_order_and_bounded() {
        let text: String = (0..60).map(|_| "a b\n").collect();
        let (users, problems) = read(&text);
        assert!(users.is_empty());
        assert_eq!(problems.lines().count(), LISTED + 1);
        assert!(problems.starts_with("line 1: ") && problems.ends_with("and 10 more problems"));
        let many: String = (0..=MOST).map(|number| format!("u{number}\n")).collect();
        assert!(read(&many).1.contains("more than 10000 users"));
    }
}
