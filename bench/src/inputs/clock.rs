//! The date and time of day in generated records, independent of the machine's clock.

/// A time since the beginning of 2026, UTC.
#[derive(Debug, Clone, Copy, Default)]
pub struct Clock {
    /// Seconds since the beginning of 2026.
    pub seconds: u64,
}

/// A date and a time of day.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    pub year: u64,
    /// Month, from 1.
    pub month: usize,
    /// Day of the month, from 1.
    pub day: u64,
    pub hour: u64,
    pub minute: u64,
    pub second: u64,
}

const MONTHS: [(&str, u64); 12] = [
    ("Jan", 31),
    ("Feb", 28),
    ("Mar", 31),
    ("Apr", 30),
    ("May", 31),
    ("Jun", 30),
    ("Jul", 31),
    ("Aug", 31),
    ("Sep", 30),
    ("Oct", 31),
    ("Nov", 30),
    ("Dec", 31),
];

impl Clock {
    /// Returns the date and time of day. Every year has 365 days.
    pub fn now(self) -> Moment {
        let days = self.seconds / 86400;
        let (mut month, mut day) = (0, days % 365);
        while day >= MONTHS[month].1 {
            day -= MONTHS[month].1;
            month += 1;
        }
        Moment {
            year: 2026 + days / 365,
            month: month + 1,
            day: day + 1,
            hour: self.seconds / 3600 % 24,
            minute: self.seconds / 60 % 60,
            second: self.seconds % 60,
        }
    }
}

impl Moment {
    /// Returns the month's English abbreviation, such as `Jan`.
    pub fn month_name(self) -> &'static str {
        MONTHS[self.month - 1].0
    }

    /// Formats the date, such as `2026-01-31`.
    pub fn date(self) -> String {
        format!("{}-{:02}-{:02}", self.year, self.month, self.day)
    }

    /// Formats the time, such as `09:05:00`.
    pub fn time(self) -> String {
        format!("{:02}:{:02}:{:02}", self.hour, self.minute, self.second)
    }
}
