//! Times as databases keep them: whole microseconds. `timestamptz` in PostgreSQL, an integer in SQLite.

use std::time::Duration;

use jiff::Timestamp;

/// Microseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Micros(pub(crate) i64);

impl Micros {
    /// The beginning of the minute of a time.
    pub(crate) fn minute_of(t: Timestamp) -> Micros {
        const MINUTE: i64 = 60_000_000;
        Micros(Micros::from(t).0.div_euclid(MINUTE) * MINUTE)
    }

    /// Returns the time that lies this long before `t`.
    pub(crate) fn earlier(t: Timestamp, by: Duration) -> Micros {
        Micros(Micros::from(t).0.saturating_sub(i64::try_from(by.as_micros()).unwrap_or(i64::MAX)))
    }
}

impl From<Timestamp> for Micros {
    fn from(t: Timestamp) -> Self {
        // Towards the past, so that nothing becomes due before its time.
        Micros(t.as_nanosecond().div_euclid(1_000) as i64)
    }
}

impl From<Micros> for Timestamp {
    fn from(micros: Micros) -> Self {
        Timestamp::from_microsecond(micros.0).unwrap_or(if micros.0 < 0 { Timestamp::MIN } else { Timestamp::MAX })
    }
}

#[cfg(feature = "postgres")]
mod in_postgres {
    use sqlx::encode::IsNull;
    use sqlx::error::BoxDynError;
    use sqlx::postgres::types::Oid;
    use sqlx::postgres::{PgArgumentBuffer, PgHasArrayType, PgTypeInfo, PgValueRef};
    use sqlx::{Decode, Encode, Postgres, Type};

    use super::Micros;

    /// 2000-01-01T00:00:00Z in microseconds since 1970, where PostgreSQL begins to count.
    const POSTGRES_EPOCH: i64 = 946_684_800_000_000;

    /// By number and not by name, which every connection would have to ask the server about.
    const TIMESTAMPTZ: Oid = Oid(1184);
    const TIMESTAMPTZ_ARRAY: Oid = Oid(1185);

    impl Type<Postgres> for Micros {
        fn type_info() -> PgTypeInfo {
            PgTypeInfo::with_oid(TIMESTAMPTZ)
        }
    }

    impl PgHasArrayType for Micros {
        fn array_type_info() -> PgTypeInfo {
            PgTypeInfo::with_oid(TIMESTAMPTZ_ARRAY)
        }
    }

    impl Encode<'_, Postgres> for Micros {
        fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
            <i64 as Encode<'_, Postgres>>::encode(self.0 - POSTGRES_EPOCH, buffer)
        }
    }

    impl Decode<'_, Postgres> for Micros {
        fn decode(value: PgValueRef<'_>) -> Result<Self, BoxDynError> {
            let bytes: [u8; 8] = value.as_bytes()?.try_into()?;
            Ok(Micros(i64::from_be_bytes(bytes).saturating_add(POSTGRES_EPOCH)))
        }
    }
}

#[cfg(feature = "sqlite")]
mod in_sqlite {
    use sqlx::encode::IsNull;
    use sqlx::error::BoxDynError;
    use sqlx::sqlite::{SqliteArgumentsBuffer, SqliteTypeInfo, SqliteValueRef};
    use sqlx::{Decode, Encode, Sqlite, Type};

    use super::Micros;

    impl Type<Sqlite> for Micros {
        fn type_info() -> SqliteTypeInfo {
            <i64 as Type<Sqlite>>::type_info()
        }

        fn compatible(ty: &SqliteTypeInfo) -> bool {
            <i64 as Type<Sqlite>>::compatible(ty)
        }
    }

    impl Encode<'_, Sqlite> for Micros {
        fn encode_by_ref(&self, buffer: &mut SqliteArgumentsBuffer) -> Result<IsNull, BoxDynError> {
            <i64 as Encode<'_, Sqlite>>::encode_by_ref(&self.0, buffer)
        }
    }

    impl Decode<'_, Sqlite> for Micros {
        fn decode(value: SqliteValueRef<'_>) -> Result<Self, BoxDynError> {
            Ok(Micros(<i64 as Decode<'_, Sqlite>>::decode(value)?))
        }
    }
}
