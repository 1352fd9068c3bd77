"""Recordings of a whole fleet: journals collected into a Parquet data set, and questions to it."""
