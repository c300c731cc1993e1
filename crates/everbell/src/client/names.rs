//! How jobs are named: `"key"`, `"key@3"`, or an id.

use everbell_core::store::JobRef;
use everbell_core::{Invalid, JobId, JobKey};

/// A reference to a job: `"daily-briefing"` is its current version, `"daily-briefing@3"` the third one, a [`JobId`]
/// exactly one.
pub trait IntoJobRef {
    /// Returns the reference, if the text is valid.
    fn into_job_ref(self) -> Result<JobRef, Invalid>;
}

impl IntoJobRef for &str {
    fn into_job_ref(self) -> Result<JobRef, Invalid> {
        let Some((key, version)) = self.rsplit_once('@').filter(|(_, digits)| is_number(digits)) else {
            return JobKey::new(self).map(JobRef::Key);
        };
        let version = version.parse().ok().filter(|version| *version > 0);
        let version =
            version.ok_or_else(|| Invalid::new("jobKey", "the version after `@` must be from 1 to 4294967295"))?;
        Ok(JobRef::Version(JobKey::new(key)?, version))
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

impl IntoJobRef for String {
    fn into_job_ref(self) -> Result<JobRef, Invalid> {
        self.as_str().into_job_ref()
    }
}

impl IntoJobRef for &String {
    fn into_job_ref(self) -> Result<JobRef, Invalid> {
        self.as_str().into_job_ref()
    }
}

impl IntoJobRef for JobId {
    fn into_job_ref(self) -> Result<JobRef, Invalid> {
        Ok(JobRef::Id(self))
    }
}

impl IntoJobRef for JobKey {
    fn into_job_ref(self) -> Result<JobRef, Invalid> {
        Ok(JobRef::Key(self))
    }
}

impl IntoJobRef for &JobKey {
    fn into_job_ref(self) -> Result<JobRef, Invalid> {
        Ok(JobRef::Key(self.clone()))
    }
}

impl IntoJobRef for JobRef {
    fn into_job_ref(self) -> Result<JobRef, Invalid> {
        Ok(self)
    }
}

impl IntoJobRef for &JobRef {
    fn into_job_ref(self) -> Result<JobRef, Invalid> {
        Ok(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_name_a_key_or_a_version() {
        let key = |text: &str| JobKey::new(text).unwrap();
        assert_eq!("daily".into_job_ref(), Ok(JobRef::Key(key("daily"))));
        assert_eq!("daily@3".into_job_ref(), Ok(JobRef::Version(key("daily"), 3)));
        assert_eq!("ana@home".into_job_ref(), Ok(JobRef::Key(key("ana@home"))));
        for (bad, reason) in
            [("", "1 to 200 bytes"), ("daily@0", "from 1"), ("daily@99999999999", "from 1"), ("@1", "1 to 200 bytes")]
        {
            let problem = bad.into_job_ref().unwrap_err();
            assert!(problem.field == "jobKey" && problem.reason.contains(reason), "{bad}: {problem}");
        }
    }
}
