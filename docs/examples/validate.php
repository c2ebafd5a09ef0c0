<?php
// Validates a VAT ID: VATPROOF_KEY=svc_live_… php validate.php DE123456789

// An outage of the sources is not retried: only three of them per VAT ID and hour are free. POST /v1/validations answers later.
function validate(string $vatId, int $tries = 3): array
{
    $base = getenv('VATPROOF_URL') ?: 'http://127.0.0.1:8080';
    $options = ['header' => 'X-Api-Key: ' . getenv('VATPROOF_KEY'), 'timeout' => 40, 'ignore_errors' => true];
    $text = @file_get_contents("$base/v1/validate/" . rawurlencode($vatId), false, stream_context_create(['http' => $options]));
    if ($text === false) {
        throw new RuntimeException('The service cannot be reached');
    }
    $body = json_decode($text, true, 512, JSON_THROW_ON_ERROR);
    if (!isset($body['error'])) {
        return $body; // $body['valid'] is a source's word
    }
    ['code' => $code, 'message' => $message, 'request_id' => $requestId] = $body['error'];
    $seconds = 0; // only 429 and 503 have it
    foreach ($http_response_header as $line) {
        if (stripos($line, 'Retry-After:') === 0) {
            $seconds = (int) trim(substr($line, 12));
        }
    }
    if ($code === 'SOURCE_UNAVAILABLE' || $tries <= 1 || $seconds === 0 || $seconds > 60) {
        throw new RuntimeException("$code: $message (request $requestId)");
    }
    sleep($seconds);
    return validate($vatId, $tries - 1);
}

try {
    if ($argc !== 2 || !getenv('VATPROOF_KEY')) {
        throw new RuntimeException('Usage: VATPROOF_KEY=svc_live_… php validate.php DE123456789');
    }
    $answer = validate($argv[1]);
    echo $answer['vat_id'], ' is ', $answer['valid'] ? 'valid' : 'not valid', PHP_EOL;
} catch (RuntimeException $error) {
    fwrite(STDERR, $error->getMessage() . PHP_EOL);
    exit(1);
}
