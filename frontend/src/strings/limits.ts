import { addTexts } from './texts';

// The texts of the limits of accounts.

export const limits = {
  'limit.type.': 'Account limit',
  'limit.type.five_hour': '5-hour limit',
  'limit.type.overage': 'Usage credits',
  'limit.type.seven_day': 'Weekly limit',
  'limit.type.seven_day_opus': 'Weekly limit for Opus',
  'limit.type.seven_day_overage_included': 'Weekly limit with usage credits',
  'limit.type.seven_day_sonnet': 'Weekly limit for Sonnet',
  'limit.named': 'Limit “{name}”',
  'limit.allowed': '{name}: not reached',
  'limit.rejected': '{name} reached',
  'limit.resets': 'resets {time}',
  'limit.resets.at': 'Resets at {time}',
  'limit.used': '{name} {n}%',
  'limit.warning': '{name} nearly reached',
};

addTexts(limits);
