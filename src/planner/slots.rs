//! Values under numbers that count up, most of which go in the order in which
//! they came. What a hash table would do, in a tenth of its size.

use std::collections::VecDeque;
use std::ops::Index;

/// The values; one that is gone leaves an empty place, until all before are gone.
#[derive(Debug)]
pub(super) struct Slots<T> {
    /// The number of the first place.
    first: u64,
    places: VecDeque<Option<Box<T>>>,
}

impl<T> Slots<T> {
    pub(super) fn new() -> Self {
        Self {
            first: 0,
            places: VecDeque::new(),
        }
    }

    /// Answers the value's number.
    pub(super) fn push(&mut self, value: T) -> u64 {
        self.places.push_back(Some(Box::new(value)));
        self.first + self.places.len() as u64 - 1
    }

    pub(super) fn get(&self, number: &u64) -> Option<&T> {
        self.places.get(self.place(number)?)?.as_deref()
    }

    pub(super) fn get_mut(&mut self, number: &u64) -> Option<&mut T> {
        let place = self.place(number)?;
        self.places.get_mut(place)?.as_deref_mut()
    }

    pub(super) fn remove(&mut self, number: &u64) -> Option<T> {
        let place = self.place(number)?;
        let value = self.places.get_mut(place)?.take();
        while let Some(None) = self.places.front() {
            self.places.pop_front();
            self.first += 1;
        }
        value.map(|value| *value)
    }

    fn place(&self, number: &u64) -> Option<usize> {
        Some(number.checked_sub(self.first)? as usize)
    }
}

impl<T> Index<&u64> for Slots<T> {
    type Output = T;

    fn index(&self, number: &u64) -> &T {
        self.get(number).expect("it is not gone")
    }
}
