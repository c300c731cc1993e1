//! The `log` target.

use everbell::RunStatus;

use super::given::perform_with;
use crate::targets::Kind;

#[tokio::test]
async fn the_payload_is_printed() {
    let run = perform_with(Kind::Log, [1, 2], |schedule| schedule).await;
    assert_eq!((run.status, run.output.as_deref()), (RunStatus::Succeeded, Some("[1,2]\n")));
}
