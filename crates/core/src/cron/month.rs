//! Months of the Gregorian calendar, in days since 1970-01-01 and as masks of their days.

/// Days from 1 March of the year 0 to 1970-01-01. Counted so, the leap day is the last of its year, and all that occurs
/// here is positive.
const FROM_YEAR_0: i64 = 719_468;

/// A month of the (proleptic Gregorian) calendar.
#[derive(Clone, Copy, Debug)]
pub(super) struct Month {
    pub(super) year: u32,
    pub(super) number: u32,
    /// Days since 1970-01-01 of its first day.
    pub(super) first: i64,
    pub(super) length: u32,
    /// Weekday of its first day, Sunday = 0.
    pub(super) weekday: u32,
}

impl Month {
    #[inline]
    pub(super) fn new(year: u32, number: u32) -> Month {
        let (from_march, march_year) = if number > 2 { (number - 3, year) } else { (number + 9, year - 1) };
        let leap_days = march_year / 4 - march_year / 100 + march_year / 400;
        let first = 365 * march_year + leap_days + (153 * from_march + 2) / 5;
        Month::starting(year, number, first)
    }

    /// The month of a day, and the number of the day in it.
    #[inline]
    pub(super) fn of_day(day: i64) -> (Month, u32) {
        let since = (day + FROM_YEAR_0) as u32;
        let (era, day_of_era) = (since / 146_097, since % 146_097);
        let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * day_of_year + 2) / 153;
        let before = day_of_year - (153 * from_march + 2) / 5;
        let number = if from_march < 10 { from_march + 3 } else { from_march - 9 };
        let year = era * 400 + year_of_era + u32::from(number <= 2);
        (Month::starting(year, number, since - before), before + 1)
    }

    #[inline]
    fn starting(year: u32, number: u32, first: u32) -> Month {
        let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let length = if number == 2 { 28 + u32::from(leap) } else { 30 + ((number ^ (number >> 3)) & 1) };
        // 1 March of the year 0 was a Wednesday.
        Month { year, number, first: i64::from(first) - FROM_YEAR_0, length, weekday: (first + 3) % 7 }
    }

    pub(super) fn following(self) -> Month {
        if self.number == 12 { Month::new(self.year + 1, 1) } else { Month::new(self.year, self.number + 1) }
    }

    /// Days since 1970-01-01 of day `n`.
    pub(super) fn day(self, n: u32) -> i64 {
        self.first + i64::from(n) - 1
    }

    /// Bits 1 to the number of days.
    pub(super) fn all(self) -> u32 {
        (2_u32.wrapping_shl(self.length)).wrapping_sub(2)
    }

    /// Bit `n` is set when day `n` falls on one of these weekdays (bit 0 = Sunday).
    #[inline]
    pub(super) fn weekly(self, weekdays: u8) -> u32 {
        // Six weeks side by side, shifted so that bit 1 is the weekday of the first.
        const SIX_WEEKS: u64 = 1 | 1 << 7 | 1 << 14 | 1 << 21 | 1 << 28 | 1 << 35;
        (((u64::from(weekdays) * SIX_WEEKS) >> self.weekday) << 1) as u32
    }
}
