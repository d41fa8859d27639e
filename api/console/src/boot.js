// Sets theme and language before the first paint. Loaded as it is, as a classic script.
(function () {
  var root = document.documentElement;
  var read = function (key) {
    try {
      return localStorage.getItem(key);
    } catch (_) {
      return null;
    }
  };
  var scheme = read('agentyard-scheme');
  if (scheme !== 'light' && scheme !== 'dark') {
    scheme = window.matchMedia && matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
  }
  root.setAttribute('data-mantine-color-scheme', scheme);
  var language = read('agentyard-language');
  if (language === 'en' || language === 'zh-CN') root.lang = language;
})();
