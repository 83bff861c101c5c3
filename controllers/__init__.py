"""Which light when, which route where, and the applications that realise both in OpenFlow."""
