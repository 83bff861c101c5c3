"""Which light when: policies that decide circuits. They know no OpenFlow, no engine and no clock of their own."""
