"""Held against packets: how far what was measured is from what the model predicts, by ideal and by fitted transport."""
