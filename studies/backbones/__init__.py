"""Pretrained bodies, own networks and large images."""
