"""`gsum verify`: stored requests generated again, alone and in shuffled batches, and compared with what is stored."""
