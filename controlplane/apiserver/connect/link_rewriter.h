// Rewrites absolute paths in responses of a proxied web server: "/static/a.js" becomes
// "/api/v1/namespaces/ns/pods/p/proxy/static/a.js".
#pragma once

#include <string>
#include <string_view>

namespace keelson::apiserver {

struct ProxyPlace {
  std::string prefix;                      // prepended to every path; no trailing slash
  std::string backend_host, request_host;  // links to these hosts are rewritten
};

// Rewrites a URL from a Location header or a link. Leaves relative URLs and other hosts unchanged.
std::string RewriteLink(const ProxyPlace& place, std::string_view url);

// Rewrites the links of an HTML page that arrives in arbitrary pieces.
class HtmlRewriter {
 public:
  explicit HtmlRewriter(ProxyPlace place) : place_(std::move(place)) {}
  // Returns the part that is complete so far.
  std::string Feed(std::string_view html);
  // Returns the rest, at the end of the page.
  std::string Finish();

 private:
  size_t Tag(size_t begin, std::string& out);  // the position after it; npos: incomplete
  void Attributes(std::string_view tag, size_t name_end, std::string& out) const;

  const ProxyPlace place_;
  std::string buffer_;
  std::string raw_until_;  // inside <script> and similar: the end tag, lower case
};

}  // namespace keelson::apiserver
