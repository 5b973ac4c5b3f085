"""What fine labels are worth on images: how many it takes, and why two recipes disagree."""
