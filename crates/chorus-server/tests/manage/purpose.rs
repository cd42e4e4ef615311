//! What counts as traffic: live requests do, whatever only looks does not.

use crate::house::{House, policy};
use chorus_store::Purpose;
use chorus_testkit::Script;
use serde_json::json;

#[tokio::test]
async fn d24_only_live_requests_are_recorded_charged_and_sent() {
    let house = House::open(&policy("gen-1")).await;
    house.up.otherwise(|_| Script::reply("ok"));
    let alone = house.chat("hello").await.text();
    for _ in 0..9 {
        assert_eq!(house.chat("hello").await.text(), alone, "a look beside it changes no answer");
        for path in ["/api/v1/eval", "/api/v1/classify/intent", "/api/v1/classify/pii"] {
            assert_eq!(house.post(path, &json!({"text": "hello"})).await.status, 200, "{path}");
        }
        let checked = house.send(house.ask("POST", "/config/router/validate"), policy("gen-2")).await;
        assert_eq!(checked.status, 200);
    }
    let records = house.records(10).await;
    assert!(records.iter().all(|record| record.purpose == Purpose::Live && record.calls.len() == 1));
    assert_eq!(house.up.requests().len(), 10);
}
