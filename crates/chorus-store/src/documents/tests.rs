//! Files and vector stores by case.

use super::*;
use crate::Recall;
use crate::qdrant::fake::FakeQdrant;
use chorus_recall::ChunkRule;
use std::collections::BTreeSet;

/// Passages here, and in a Qdrant server.
fn both() -> [Documents; 2] {
    let here = || Recall::in_memory().unwrap().documents;
    [here(), here().with_passages_in(Arc::<FakeQdrant>::default(), "ours_")]
}

fn of(user: &str) -> Whose {
    Whose::Of(Some(user.to_owned()))
}

async fn file(it: &Documents, owner: Option<&str>, name: &str, content: &str) -> StoredFile {
    let new = NewFile {
        owner: owner.map(str::to_owned),
        name: name.to_owned(),
        purpose: "assistants".to_owned(),
        content: content.as_bytes().to_vec(),
        at: 5,
    };
    it.put_file(new, DocumentLimits::default()).await.unwrap()
}

async fn store(it: &Documents, owner: Option<&str>, name: &str) -> VectorStore {
    let owner = owner.map(str::to_owned);
    it.make_store(owner, name.to_owned(), "{}".to_owned(), 5, DocumentLimits::default()).await.unwrap()
}

async fn fill(it: &Documents, whose: Whose, store: &str, file: &str, passages: &[(&str, [f32; 2])]) {
    let rule = ChunkRule::default();
    let attached = it.attach(whose, store, file, r#"{"year":2024}"#.to_owned(), rule, 6).await.unwrap();
    assert!(matches!(&attached, Attached::New(it) if it.progress == Progress::InProgress), "{attached:?}");
    let new =
        |(text, vector): &(&str, [f32; 2])| NewPassage { text: (*text).to_owned(), vector: vector.to_vec() };
    let passages = Ok(passages.iter().map(new).collect());
    it.settle(store, file, "e", passages, DocumentLimits::default()).await.unwrap();
}

fn question(store: &str, most: usize) -> Question {
    let (store, encoder) = (store.to_owned(), "e".to_owned());
    Question { store, encoder, vector: vec![1.0, 0.0], most, files: None }
}

fn texts(hits: Option<Vec<Hit>>) -> Vec<String> {
    hits.unwrap().into_iter().map(|it| it.text).collect()
}

#[tokio::test]
async fn the_nearest_passages_come_first() {
    for it in both() {
        let (a, b) = (file(&it, None, "a.txt", "aa").await, file(&it, None, "b.txt", "bb").await);
        let vs = store(&it, None, "docs").await;
        fill(&it, Whose::All, &vs.id, &a.id, &[("north", [0.0, 1.0]), ("east", [1.0, 0.0])]).await;
        fill(&it, Whose::All, &vs.id, &b.id, &[("north-east", [0.6, 0.8])]).await;
        let hits = it.search(Whose::All, question(&vs.id, 2)).await.unwrap();
        assert_eq!(hits.as_ref().unwrap()[0].name, "a.txt");
        assert_eq!(texts(hits), ["east", "north-east"]);
        let only = Question { files: Some(BTreeSet::from([b.id.clone()])), ..question(&vs.id, 5) };
        assert_eq!(texts(it.search(Whose::All, only).await.unwrap()), ["north-east"]);
        let other = Question { encoder: "another".to_owned(), ..question(&vs.id, 5) };
        assert!(texts(it.search(Whose::All, other).await.unwrap()).is_empty());
        assert!(it.delete_file(Whose::All, &a.id).await.unwrap());
        assert_eq!(texts(it.search(Whose::All, question(&vs.id, 5)).await.unwrap()), ["north-east"]);
        assert!(it.detach(Whose::All, &vs.id, &b.id).await.unwrap());
        assert!(texts(it.search(Whose::All, question(&vs.id, 5)).await.unwrap()).is_empty());
        assert!(it.file(Whose::All, &b.id).await.unwrap().is_some(), "the file itself stays");
    }
}

#[tokio::test]
async fn f01_nobody_reaches_another_s_files_and_stores() {
    for it in both() {
        let mine = file(&it, Some("ada"), "diary.txt", "secret of ada").await;
        let vs = store(&it, Some("ada"), "diary").await;
        fill(&it, of("ada"), &vs.id, &mine.id, &[("secret of ada", [1.0, 0.0])]).await;
        let (bob, nobody) = (of("bob"), Whose::Of(None));
        for whose in [bob.clone(), nobody, Whose::SharedOr(Some("bob".to_owned())), Whose::SharedOr(None)] {
            assert_eq!(it.file(whose.clone(), &mine.id).await.unwrap(), None);
            assert_eq!(it.content(whose.clone(), &mine.id).await.unwrap(), None);
            assert!(!it.delete_file(whose.clone(), &mine.id).await.unwrap());
            assert_eq!(it.store(whose.clone(), &vs.id).await.unwrap(), None);
            assert_eq!(it.store(whose.clone(), "diary").await.unwrap(), None);
            assert_eq!(it.search(whose.clone(), question(&vs.id, 5)).await.unwrap(), None);
            assert_eq!(it.attached(whose.clone(), &vs.id).await.unwrap(), None);
            assert!(!it.delete_store(whose.clone(), &vs.id).await.unwrap());
            assert!(it.files(whose, 10).await.unwrap().is_empty());
        }
        let own = store(&it, Some("bob"), "bob's").await;
        let stolen = it.attach(bob, &own.id, &mine.id, "{}".into(), ChunkRule::default(), 7).await.unwrap();
        assert_eq!(stolen, Attached::NoFile, "another's file is not there to be attached");
        assert_eq!(it.content(of("ada"), &mine.id).await.unwrap().unwrap(), b"secret of ada");
    }
}

#[tokio::test]
async fn a_route_finds_shared_stores_and_the_caller_s_own_first() {
    let it = Recall::in_memory().unwrap().documents;
    let (shared, own) = (store(&it, None, "handbook").await, store(&it, Some("ada"), "handbook").await);
    let route = |user: &str| Whose::SharedOr(Some(user.to_owned()));
    assert_eq!(it.store(route("ada"), "handbook").await.unwrap().unwrap().id, own.id);
    assert_eq!(it.store(route("bob"), "handbook").await.unwrap().unwrap().id, shared.id);
    assert_eq!(it.store(Whose::SharedOr(None), "handbook").await.unwrap().unwrap().id, shared.id);
}

#[tokio::test]
async fn i02_every_bound_is_held() {
    for it in both() {
        let limits = DocumentLimits {
            max_file_bytes: 4,
            max_files: 2,
            max_owner_bytes: 6,
            max_vector_stores: 1,
            max_passages: 1,
        };
        let put = |content: &str| {
            let (name, purpose) = ("n".to_owned(), "p".to_owned());
            let content = content.as_bytes().to_vec();
            it.put_file(NewFile { owner: None, name, purpose, content, at: 1 }, limits)
        };
        let bound = |outcome: Result<StoredFile, RecallFault>| match outcome {
            Err(RecallFault::Bound { bound, .. }) => bound,
            other => panic!("{other:?}"),
        };
        let first = put("1234").await.unwrap();
        assert_eq!(bound(put("12345").await), "max_file_size_mb");
        assert_eq!(bound(put("123").await), "max_owner_bytes");
        put("12").await.unwrap();
        assert_eq!(bound(put("").await), "max_files");
        let vs = it.make_store(None, "a".into(), "{}".into(), 1, limits).await.unwrap();
        assert!(it.make_store(None, "b".into(), "{}".into(), 1, limits).await.is_err());
        it.attach(Whose::All, &vs.id, &first.id, "{}".into(), ChunkRule::default(), 1).await.unwrap();
        let passage = || NewPassage { text: "t".into(), vector: vec![1.0] };
        let full = it.settle(&vs.id, &first.id, "e", Ok(vec![passage(), passage()]), limits).await;
        assert!(matches!(full, Err(RecallFault::Bound { bound: "max_entries_per_store", .. })));
        it.settle(&vs.id, &first.id, "e", Err("too many".into()), limits).await.unwrap();
        let files = it.attached(Whose::All, &vs.id).await.unwrap().unwrap();
        assert_eq!(files[0].progress, Progress::Failed("too many".into()));
    }
}

#[tokio::test]
async fn a_file_that_was_being_read_when_the_server_stopped_has_failed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/recall.sqlite");
    let it = Recall::open(&path).unwrap().documents;
    let (f, vs) = (file(&it, None, "a", "a").await, store(&it, None, "s").await);
    it.attach(Whose::All, &vs.id, &f.id, "{}".into(), ChunkRule::default(), 1).await.unwrap();
    let again = Recall::open(&path).unwrap().documents;
    let files = again.attached(Whose::All, &vs.id).await.unwrap().unwrap();
    assert!(matches!(&files[0].progress, Progress::Failed(why) if why.contains("stopped")));
    assert_eq!(again.content(Whose::All, &f.id).await.unwrap().unwrap(), b"a");
}

#[tokio::test]
async fn f01_what_a_server_gives_is_shown_only_where_its_file_is_attached_here() {
    let server = Arc::new(FakeQdrant::without_conditions());
    let it = Recall::in_memory().unwrap().documents.with_passages_in(server, "ours_");
    let (a, b) = (file(&it, None, "a", "a").await, file(&it, None, "b", "b").await);
    let vs = store(&it, None, "docs").await;
    fill(&it, Whose::All, &vs.id, &a.id, &[("of a", [1.0, 0.0])]).await;
    fill(&it, Whose::All, &vs.id, &b.id, &[("of b", [1.0, 0.0])]).await;
    let only = Question { files: Some(BTreeSet::from([b.id.clone()])), ..question(&vs.id, 5) };
    assert_eq!(texts(it.search(Whose::All, only).await.unwrap()), ["of b"], "though it gives both");
    let other = Question { encoder: "another".to_owned(), ..question(&vs.id, 5) };
    assert!(texts(it.search(Whose::All, other).await.unwrap()).is_empty());
}

#[tokio::test]
async fn a_collection_goes_with_its_store() {
    let server = Arc::<FakeQdrant>::default();
    let link = Arc::clone(&server) as Arc<dyn QdrantLink>;
    let it = Recall::in_memory().unwrap().documents.with_passages_in(link, "ours_");
    let f = file(&it, None, "a", "a").await;
    let (one, other) = (store(&it, None, "one").await, store(&it, Some("ada"), "other").await);
    for (whose, vs) in [(Whose::All, &one), (Whose::All, &other)] {
        fill(&it, whose, &vs.id, &f.id, &[("a", [1.0, 0.0])]).await;
    }
    assert_eq!(server.collections(), [format!("ours_{}", one.id), format!("ours_{}", other.id)]);
    // Read again: its passages are there once.
    fill(&it, Whose::All, &one.id, &f.id, &[("a", [1.0, 0.0])]).await;
    assert_eq!(texts(it.search(Whose::All, question(&one.id, 5)).await.unwrap()), ["a"]);
    assert!(it.delete_store(Whose::All, &one.id).await.unwrap());
    assert_eq!(server.collections(), [format!("ours_{}", other.id)]);
    assert_eq!(it.search(Whose::All, question(&one.id, 5)).await.unwrap(), None);
}
