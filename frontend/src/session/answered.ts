import type { Request } from '../api/records';
import { isObject } from '../content/blocks';
import { shownName } from '../content/reveal';
import { lookup, t } from '../strings/t';

// The answer to a request in words.

interface Told {
  text: string;
  tone: 'ok' | 'danger' | 'muted' | 'warn';
}

export function told(request: Request): Told {
  switch (request.status) {
    case 'requested':
      return { text: t('request.waiting'), tone: 'warn' };
    case 'cancelled':
      return { text: t('request.cancelled'), tone: 'muted' };
    case 'expired':
      return {
        text: request.kind === 'trust' ? t('request.expired.trust') : t('request.expired'),
        tone: 'muted',
      };
    default:
      return answered(request);
  }
}

function answered(request: Request): Told {
  const answer = isObject(request.answer) ? request.answer : {};
  const builtin = request.answeredBy === 'rule' && request.rule?.id.startsWith('builtin:');
  const by = builtin ? t('surface.rule.builtin') : lookup(`surface.${request.answeredBy ?? ''}`);
  const say = (text: string, tone: Told['tone']): Told => ({
    text: by ? t('request.by', { what: text, surface: by }) : text,
    tone,
  });
  if (request.kind === 'permission' || request.kind === 'trust') {
    const option = request.options.find((one) => one.id === answer['optionId']);
    if (option) return say(shownName(option), option.kind.startsWith('reject') ? 'danger' : 'ok');
  }
  if (request.status === 'rejected') {
    const cancelled = answer['action'] === 'cancel';
    if (request.kind === 'raw') return say(t('request.dismissed'), 'muted');
    return say(cancelled ? t('request.aborted') : t('request.declined'), 'muted');
  }
  if (request.kind === 'url') {
    if (request.completedAt) return say(t('request.finished'), 'ok');
    return say(t('request.opened'), 'ok');
  }
  if (request.kind === 'question') return say(replies(request, answer['answers']), 'ok');
  if (answer['action'] === 'decline') return say(t('request.declined'), 'muted');
  if (answer['action'] === 'cancel') {
    return say(request.kind === 'raw' ? t('request.dismissed') : t('request.aborted'), 'muted');
  }
  return say(t('request.answered'), 'ok');
}

function replies(request: Request, answers: unknown): string {
  if (!Array.isArray(answers)) return t('request.answered');
  const labels = answers.map((list: unknown, index) => {
    const options = request.questions?.[index]?.options ?? [];
    const chosen = Array.isArray(list) ? list.map(String) : [];
    return chosen.map((id) => options.find((option) => option.id === id)?.label ?? id).join(', ');
  });
  return labels.filter(Boolean).join(' · ') || t('request.answered');
}
