"""What a scheduler has beside jobs and workflows, as clients handle it, over HTTP.

`windlass.client.service` puts it together; the embedded engine offers the same in
`windlass.embedded`. It decides nothing.
"""
