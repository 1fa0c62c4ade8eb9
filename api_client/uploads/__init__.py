"""S3-compatible uploads in parts: the store, its addresses, its signatures."""
