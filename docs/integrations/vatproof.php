<?php
// Validates a VAT ID at Vatproof. Copy this file into your program. VATPROOF_URL and VATPROOF_KEY come from the environment.

/** Returns "valid" or "invalid" if a source said so, and "unknown" for anything else: an outage, a limit, a wrong key. */
function vatproof_validate(string $vatId, int $timeout = 40): string
{
    $options = ['header' => 'X-Api-Key: ' . getenv('VATPROOF_KEY'), 'timeout' => $timeout, 'ignore_errors' => true];
    $url = getenv('VATPROOF_URL') . '/v1/validate/' . rawurlencode($vatId);
    $body = json_decode((string) @file_get_contents($url, false, stream_context_create(['http' => $options])), true);
    if (is_bool($body['valid'] ?? null)) {
        return $body['valid'] ? 'valid' : 'invalid';
    }
    // Such a text is the VAT ID of no member state: a typing error of the customer.
    return ($body['error']['code'] ?? null) === 'INVALID_VAT_ID' ? 'invalid' : 'unknown';
}
