"""One command under the lock: job, supervisor, child, evidence, record, recovery."""
