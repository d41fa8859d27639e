import './generated/theme.css';
import './styles/mantine';

import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';

import { App } from './app/App';
import { noticeNewVersion } from './app/new-version';
import { watchAccount } from './app/watch-account';
import { followSystem } from './scheme';

followSystem();
noticeNewVersion();
watchAccount();
const root = document.getElementById('root');
if (root) {
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
}
