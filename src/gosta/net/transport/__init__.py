"""Carrying messages between neighbours over TCP with TLS, through proxies and forwarders."""
