//! The plan as the executor carries it out: the intermediate representation between planner and executor.

pub use contend_record::run::{
    ByteSet, Class, Column, Combine, Command, Cut, FieldPlace, Group, Guard, Key, LineOrder, Merge,
    Numbers, Plan, Records, SortKey, Source, Stage, StatusRule, Step,
};
