"""Campaigns: what to replay on what, how often and in which order; driving it; joining shares of it.

`settings` is what the user asked for, `document` the campaign as `campaign.json` keeps it, `schedule` its runs and
shares, `prepare` the plans of its journals, `runner` one run, `drive` all of them, `merge` the joining of shares.
"""
