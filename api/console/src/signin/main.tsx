import '../generated/theme.css';

import { StrictMode, useState } from 'react';
import { createRoot } from 'react-dom/client';

import { errors as enErrors } from '../i18n/en/errors';
import { signin as enSignin } from '../i18n/en/signin';
import { type Language, pageLanguage, storeLanguage } from '../i18n/language';
import { type Messages, TranslationProvider } from '../i18n/translator';
import { errors as zhErrors } from '../i18n/zh/errors';
import { signin as zhSignin } from '../i18n/zh/signin';
import { followSystem } from '../scheme';
import { SignInPage } from './SignInPage';

const messages: Record<Language, Messages> = {
  en: { ...enErrors, ...enSignin },
  'zh-CN': { ...zhErrors, ...zhSignin },
};

/** The sign-in page with its language. */
function SignInEntry() {
  const [language, setLanguage] = useState(pageLanguage);
  const change = (next: Language): void => {
    storeLanguage(next);
    setLanguage(next);
  };
  const translation = { language, messages: messages[language], setLanguage: change };
  return (
    <TranslationProvider value={translation}>
      <SignInPage />
    </TranslationProvider>
  );
}

followSystem();
const root = document.getElementById('root');
if (root) {
  createRoot(root).render(
    <StrictMode>
      <SignInEntry />
    </StrictMode>,
  );
}
