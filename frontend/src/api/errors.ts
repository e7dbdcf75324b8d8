/** An error of a call: a stable code and its parameters. The catalogue of strings has the text for the code. */
export class ApiError extends Error {
  override readonly name = 'ApiError';

  constructor(
    readonly code: string,
    readonly params: Record<string, string> = {},
    /** The HTTP status, or 0 when no answer came. */
    readonly status = 0,
    /** The server's text for developers. The page shows detail only for a code without a text of its own. */
    readonly detail = '',
  ) {
    super(`${code}${detail ? `: ${detail}` : ''}`);
  }
}

/** Reports whether the server refused the call itself (4xx), so that the same call would be refused again. */
export function isRefused(thrown: unknown): thrown is ApiError {
  return thrown instanceof ApiError && thrown.status >= 400 && thrown.status < 500;
}

/** Converts any thrown value to an ApiError. */
export function asApiError(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown;
  if (thrown instanceof Error) return new ApiError('internal', {}, 0, thrown.message);
  return new ApiError('internal', {}, 0, String(thrown));
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Reads a problem+json body. Any other body gives an error with the code "http". */
export function problem(status: number, body: unknown): ApiError {
  if (!isObject(body)) return new ApiError('http', { status: String(status) }, status);
  const params: Record<string, string> = {};
  if (isObject(body['params'])) {
    for (const [key, value] of Object.entries(body['params'])) {
      if (value !== null && value !== undefined) params[key] = String(value);
    }
  }
  const code = typeof body['code'] === 'string' && body['code'] !== '' ? body['code'] : 'http';
  if (code === 'http') params['status'] ??= String(status);
  const detail = typeof body['detail'] === 'string' ? body['detail'] : '';
  return new ApiError(code, params, status, detail);
}
