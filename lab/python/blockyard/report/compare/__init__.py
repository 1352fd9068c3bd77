"""What `blockyard compare` says, in each of its forms."""
