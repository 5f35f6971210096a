"""What is kept: digests and canonical bytes (pure), blobs, action cache, invocation journal."""
