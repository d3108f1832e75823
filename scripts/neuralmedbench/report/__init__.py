"""The report: one offline file that computes nothing."""
