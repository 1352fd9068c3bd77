"""`blockyard advise`: what to change at which sites, and what it gains."""
