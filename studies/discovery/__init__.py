"""Discovery: are hidden symmetries found, and none where there is none?"""
