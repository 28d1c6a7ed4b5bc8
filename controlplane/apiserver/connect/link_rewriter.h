// What a web server behind a proxy path says of its own paths, made right for those who came through the
// proxy: "/static/a.js" becomes "/api/v1/namespaces/ns/pods/p/proxy/static/a.js".
#pragma once

#include <string>
#include <string_view>

namespace keelson::apiserver {

struct ProxyPlace {
  std::string prefix;                      // of every path, without a slash at its end
  std::string backend_host, request_host;  // links to these are links to the server itself
};

// A URL as the server wrote it, in a Location header or a link. Relative ones and those to other hosts stay.
std::string RewriteLink(const ProxyPlace& place, std::string_view url);

// Rewrites the links of a page as it comes, in pieces cut anywhere.
class HtmlRewriter {
 public:
  explicit HtmlRewriter(ProxyPlace place) : place_(std::move(place)) {}
  // What can be said so far.
  std::string Feed(std::string_view html);
  // The rest, when no more comes.
  std::string Finish();

 private:
  size_t Tag(size_t begin, std::string& out);  // behind it; npos: it is not complete
  void Attributes(std::string_view tag, size_t name_end, std::string& out) const;

  const ProxyPlace place_;
  std::string buffer_;
  std::string raw_until_;  // inside <script> and the like: the end tag, lower case
};

}  // namespace keelson::apiserver
