//! Times for PostgreSQL.

use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::types::Oid;
use sqlx::postgres::{PgArgumentBuffer, PgHasArrayType, PgTypeInfo, PgValueRef};
use sqlx::{Decode, Encode, Postgres, Type};

/// Microseconds since 1970, as a `timestamptz`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Micros(pub(crate) i64);

const YEAR_2000: i64 = 946_684_800_000_000;

impl Type<Postgres> for Micros {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(Oid(1184))
    }
}

impl PgHasArrayType for Micros {
    fn array_type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(Oid(1185))
    }
}

impl Encode<'_, Postgres> for Micros {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        Encode::<Postgres>::encode(self.0 - YEAR_2000, buffer)
    }
}

impl Decode<'_, Postgres> for Micros {
    fn decode(value: PgValueRef<'_>) -> Result<Micros, BoxDynError> {
        Ok(Micros(<i64 as Decode<Postgres>>::decode(value)? + YEAR_2000))
    }
}
