"""Tests of others, over what Adamant offers in the place of what they were written for."""
