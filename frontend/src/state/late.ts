import type { ApiError } from '../api/errors';
import { lookup, t } from '../strings/t';

/** Returns the text that says why an answer came too late: who answered first, or how the request ended. */
export function late(error: ApiError): string {
  const { status = '', answeredBy = '' } = error.params;
  const surface = lookup(`surface.${answeredBy}`);
  switch (status) {
    case 'cancelled':
      return t('late.cancelled');
    case 'expired':
      return t('late.expired');
    case 'rejected':
      return surface ? t('late.rejected', { surface }) : t('error.request.resolved');
    default:
      return surface ? t('late.answered', { surface }) : t('error.request.resolved');
  }
}
