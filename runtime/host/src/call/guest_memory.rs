//! Guest memory of the process: a total, a share for each provider, waiting for room.
//!
//! Each provider's share holds at least one call of the largest size that its limits allow; what is left of the total is divided equally. Shares do
//! not overlap, so no provider takes memory from another. Within a share the oldest call always gets what its limit allows; younger calls grow while
//! that stays true, and wait otherwise. So some call of each provider can always end, and calls never wait for each other in a circle.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

/// What the total is when none is set: so many calls of the largest size for each provider.
pub const CALLS_BY_DEFAULT: u64 = 2;

/// Use of guest memory by one provider, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GuestMemoryUse {
    /// Now.
    pub used: u64,
    /// The most so far.
    pub peak: u64,
    /// The most there can be.
    pub share: u64,
}

/// The guest memory of a process.
#[derive(Debug)]
pub(crate) struct GuestMemory {
    total: Option<u64>,
    accounts: Mutex<BTreeMap<Arc<str>, Account>>,
    freed: Notify,
}

/// What one provider uses.
#[derive(Debug, Default)]
pub(super) struct Account {
    /// `limits.memoryBytes` of the provider, and of its predecessor or successor while there are two.
    limits: Vec<u64>,
    /// Bytes of each call, by age.
    calls: BTreeMap<u64, u64>,
    used: u64,
    peak: u64,
    /// Number of the next call.
    next: u64,
}

impl Account {
    /// The largest a call may become.
    fn reserve(&self) -> u64 {
        self.limits.iter().copied().max().unwrap_or(0)
    }

    /// Whether the call may grow by so much now.
    fn fits(&self, call: u64, growth: u64, share: u64) -> bool {
        match self.calls.first_key_value() {
            Some((&oldest, &held)) if oldest != call => {
                (self.used - held).saturating_add(growth).saturating_add(self.reserve()) <= share
            }
            _ => true,
        }
    }
}

/// The total, and a provider's share of it. `reserves`: the largest call of each provider.
fn shares(total: Option<u64>, reserves: impl Iterator<Item = u64> + Clone, own: u64) -> (u64, u64) {
    let (sum, count) = reserves.fold((0_u64, 0), |(sum, count), next| (sum.saturating_add(next), count + 1));
    let total = total.unwrap_or_else(|| sum.saturating_mul(CALLS_BY_DEFAULT));
    (total, own + total.saturating_sub(sum) / u64::max(count, 1))
}

impl GuestMemory {
    /// So many bytes for all; none for [`CALLS_BY_DEFAULT`] of the largest calls of each provider.
    pub fn new(total: Option<u64>) -> Arc<Self> {
        Arc::new(Self {
            total,
            accounts: Mutex::default(),
            freed: Notify::new(),
        })
    }

    /// The share of a provider whose calls may have up to `limit` bytes each, until it is dropped. A successor has that of its predecessor. The
    /// error says what to change when the total is too small for one call of each provider.
    pub fn share(self: &Arc<Self>, provider: &str, limit: u64) -> Result<MemoryShare, String> {
        let provider: Arc<str> = provider.into();
        let mut accounts = self.accounts();
        accounts.entry(Arc::clone(&provider)).or_default().limits.push(limit);
        let needed: u64 = accounts.values().map(Account::reserve).sum();
        let share = MemoryShare {
            memory: Arc::clone(self),
            provider,
            limit,
        };
        drop(accounts);
        match self.total {
            Some(total) if needed > total => Err(format!(
                "limits.memoryBytes: one call of each provider may need {needed} bytes together, and guestMemoryBytes is {total}"
            )),
            _ => Ok(share),
        }
    }

    pub(super) fn accounts(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Account>> {
        self.accounts.lock()
    }

    /// Takes the memory if the call may have it now.
    fn try_grow(&self, call: &CallMemory, growth: u64) -> bool {
        let mut accounts = self.accounts();
        let reserves = accounts.values().map(Account::reserve);
        let Some(account) = accounts.get(&call.provider) else {
            return false;
        };
        let (_, share) = shares(self.total, reserves, account.reserve());
        if !account.fits(call.number, growth, share) {
            return false;
        }
        let account = accounts.get_mut(&call.provider).expect("it was there just now");
        *account.calls.entry(call.number).or_default() += growth;
        account.used += growth;
        account.peak = account.peak.max(account.used);
        true
    }
}

/// A provider's share, as long as the provider is there.
#[derive(Debug)]
pub(crate) struct MemoryShare {
    memory: Arc<GuestMemory>,
    provider: Arc<str>,
    limit: u64,
}

impl MemoryShare {
    /// A new call, which has no memory yet.
    pub fn call(&self) -> CallMemory {
        let mut accounts = self.memory.accounts();
        let account = accounts.entry(Arc::clone(&self.provider)).or_default();
        let number = account.next;
        account.next += 1;
        account.calls.insert(number, 0);
        CallMemory {
            memory: Arc::clone(&self.memory),
            provider: Arc::clone(&self.provider),
            number,
        }
    }

    /// How much of it is used.
    pub fn in_use(&self) -> GuestMemoryUse {
        let accounts = self.memory.accounts();
        let reserves = accounts.values().map(Account::reserve);
        accounts
            .get(&self.provider)
            .map_or_else(GuestMemoryUse::default, |account| GuestMemoryUse {
                used: account.used,
                peak: account.peak,
                share: shares(self.memory.total, reserves, account.reserve()).1,
            })
    }
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        let mut accounts = self.memory.accounts();
        if let Some(account) = accounts.get_mut(&self.provider) {
            if let Some(at) = account.limits.iter().position(|limit| *limit == self.limit) {
                account.limits.swap_remove(at);
            }
            if account.limits.is_empty() && account.calls.is_empty() {
                accounts.remove(&self.provider);
            }
        }
        drop(accounts);
        self.memory.freed.notify_waiters();
    }
}

/// The memory of one call; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct CallMemory {
    memory: Arc<GuestMemory>,
    provider: Arc<str>,
    number: u64,
}

impl CallMemory {
    /// Waits until the call may have so many bytes more.
    pub async fn grow(&self, growth: u64) {
        loop {
            // Subscribes before it checks, so that nothing freed in between is missed.
            let mut freed = std::pin::pin!(self.memory.freed.notified());
            freed.as_mut().enable();
            if self.memory.try_grow(self, growth) {
                return;
            }
            freed.await;
        }
    }

    /// Takes so many bytes more if the call may have them now.
    pub fn try_grow(&self, growth: u64) -> bool {
        self.memory.try_grow(self, growth)
    }

    /// Gives so many bytes back.
    pub fn shrink(&self, bytes: u64) {
        let mut accounts = self.memory.accounts();
        if let Some(account) = accounts.get_mut(&self.provider)
            && let Some(held) = account.calls.get_mut(&self.number)
        {
            let bytes = bytes.min(*held);
            *held -= bytes;
            account.used -= bytes;
        }
        drop(accounts);
        self.memory.freed.notify_waiters();
    }
}

impl Drop for CallMemory {
    fn drop(&mut self) {
        let mut accounts = self.memory.accounts();
        if let Some(account) = accounts.get_mut(&self.provider) {
            account.used -= account.calls.remove(&self.number).unwrap_or(0);
            if account.limits.is_empty() && account.calls.is_empty() {
                accounts.remove(&self.provider);
            }
        }
        drop(accounts);
        self.memory.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
