"""A client for Vatproof: `Vatproof("https://vat.example.com", api_key="svc_live_…")`."""
from .client import Batches, BatchSubmission, Submission, Validations, Vatproof
from .errors import VatproofError

__all__ = ["BatchSubmission", "Batches", "Submission", "Validations", "Vatproof", "VatproofError"]
