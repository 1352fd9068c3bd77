"""Tables in, pictures and pages out; `builder.build` makes the report of a campaign's folder."""
