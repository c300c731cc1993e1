//! [`User`]: a person whom the application around the API has authenticated.

use super::access::Role;

/// A longer name is cut.
const MAX_NAME_CHARS: usize = 200;

/// A person whom the application has authenticated, as an extension of the request.
///
/// A client cannot set extensions, so everbell believes them. The audit trail names the person `user:NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    name: String,
    role: Role,
}

impl User {
    /// A person with this name and role.
    pub fn new(name: impl AsRef<str>, role: Role) -> User {
        let name: String = name.as_ref().chars().filter(|c| !c.is_control()).take(MAX_NAME_CHARS).collect();
        User { name: format!("user:{}", name.trim()), role }
    }

    /// As the audit trail names it: `user:anna`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The role of the person.
    pub fn role(&self) -> Role {
        self.role
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_can_be_stored_and_is_no_token() {
        assert_eq!(User::new(" anna\0\n ", Role::Viewer).name(), "user:anna");
        assert_eq!(User::new("token:ops", Role::Admin).name(), "user:token:ops");
        assert_eq!(User::new("é".repeat(500), Role::Admin).name().chars().count(), MAX_NAME_CHARS + 5);
    }
}
