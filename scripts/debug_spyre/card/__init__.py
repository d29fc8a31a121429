"""The Spyre cards: who holds them, and the lock."""
