//! [`AccessStore`]: tokens and sessions, the audit trail, and requests that may be retried.

use async_trait::async_trait;
use jiff::Timestamp;

use super::interceptor::{Call, Interceptor, audit_entry, verbs};
use super::{
    AuditEntry, LastAdmin, NewSession, NewToken, Page, PageRequest, Remembered, RequestKey, Session, SessionFilter,
    StoreResult, Token,
};

verbs! {
    /// Keeps tokens, sessions, the audit trail and the answers to requests.
    pub trait AccessStore {
        /// Stores a token; only its hash is ever known here. A taken name is a
        /// [`StoreError::Conflict`](super::StoreError::Conflict).
        async fn create_token(&self, token: &NewToken, audit: &AuditEntry) -> StoreResult<Token>;

        /// The token of this hash, if it is neither revoked nor expired at `now`; remembers that it was used.
        async fn find_token(&self, hash: &[u8; 32], now: Timestamp) -> StoreResult<Option<Token>>;

        /// Every token, without its hash.
        async fn list_tokens(&self) -> StoreResult<Vec<Token>>;

        /// Ends a token and its sessions. The last admin token that is valid at `now` is a
        /// [`StoreError::Conflict`](super::StoreError::Conflict), unless `last_admin` allows that; of several that are
        /// revoked at once, one remains.
        async fn revoke_token(
            &self,
            name: &str,
            now: Timestamp,
            last_admin: LastAdmin,
            audit: &AuditEntry,
        ) -> StoreResult<()>;

        /// Stores a session; only its hash is ever known here. Of one token at most
        /// [`MAX_SESSIONS_PER_TOKEN`](super::MAX_SESSIONS_PER_TOKEN) stay: the oldest are deleted.
        async fn create_session(&self, session: &NewSession, audit: &AuditEntry) -> StoreResult<()>;

        /// The session of this hash, if it has not ended at `now` ([`Session::ends_at`]); remembers that it was used.
        /// Whether its token is still valid is for the caller to ask.
        async fn find_session(&self, hash: &[u8; 32], now: Timestamp) -> StoreResult<Option<Session>>;

        /// Sessions that have not ended at `now`, the newest first; at most
        /// [`MAX_LISTED_SESSIONS`](super::MAX_LISTED_SESSIONS).
        async fn list_sessions(&self, filter: &SessionFilter, now: Timestamp) -> StoreResult<Vec<Session>>;

        /// Deletes sessions and returns how many. The entry is written only if there was one.
        async fn end_sessions(&self, filter: &SessionFilter, audit: &AuditEntry) -> StoreResult<u64>
        where (|ended| *ended > 0);

        /// Appends an audit entry about an action that no other verb records.
        async fn append_audit(&self, audit: &AuditEntry) -> StoreResult<()>;

        /// The audit trail, a page at a time, newest first, of one object or of all.
        async fn list_audit(&self, object: Option<&str>, page: &PageRequest) -> StoreResult<Page<AuditEntry>>;

        /// Looks for an earlier request of this key that was begun at most [`REQUEST_RETENTION`](super::REQUEST_RETENTION) before
        /// `now`.
        async fn find_request(&self, request: &RequestKey, now: Timestamp) -> StoreResult<Remembered>;

        /// Remembers the answer to a request. One that has an answer, or that was another request, keeps what it has.
        async fn remember_answer(&self, request: &RequestKey, answer: (u16, &str), now: Timestamp) -> StoreResult<()>;
    }
}
