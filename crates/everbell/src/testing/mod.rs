//! Tests of your own schedules and handlers: no waiting, no network, the same result every time.
//!
//! A [`TestBell`] is what your [`Builder`](crate::Builder) describes, on a store in memory and under a clock that only the
//! test moves. Nothing runs by itself: [`TestBell::advance_to`] lets time pass, and everything that is due happens in its
//! order before the call returns. It waits for handlers in real time as well, up to 10 s each
//! ([`TestBell::handler_timeout`]); under `#[tokio::test(start_paused = true)]` a handler that sleeps takes no time at all.
//! One that waits for longer, or for the clock of the test, works on while time passes.
//!
//! ```
//! use everbell::testing::TestBell;
//! use everbell::{Everbell, Payload, Schedule};
//!
//! async fn brief(Payload(org): Payload<u64>) -> Result<String, std::fmt::Error> {
//!     Ok(format!("briefed {org}"))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let app = Everbell::builder()
//!     .target("brief", brief)
//!     .schedule(Schedule::cron("briefing", "0 8 * * *").tz("Europe/Paris").target("brief").payload(7));
//!
//! let mut test = TestBell::start(app, "2027-03-27T12:00:00Z").await;
//! test.advance_to("2027-03-29T12:00:00Z").await; // over the night in which clocks go forward
//! test.assert_ran("briefing").await.times(2).with_payload(&7);
//! assert_eq!(test.next_fires("briefing", 1).await, ["2027-03-30T08:00:00+02:00[Europe/Paris]"]);
//!
//! let said: String = test.perform("brief", 8).await.unwrap(); // one handler, without a schedule
//! assert_eq!(said, "briefed 8");
//!
//! test.crash_during("briefing").await; // the process dies while the handler works
//! test.advance_by(std::time::Duration::from_mins(2)).await;
//! test.assert_settled().await; // another one noticed, and said so
//! # }
//! ```

mod assertions;
mod bell;
mod clock;
mod perform;
mod ran;
mod time;

pub use bell::{IntoTime, TestBell};
pub use clock::ManualClock;
pub use perform::RunSetup;
pub use ran::{Drained, Gaps, Ran};

pub use everbell_core::GapReason;
