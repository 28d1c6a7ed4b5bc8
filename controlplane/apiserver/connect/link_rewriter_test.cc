#include "controlplane/apiserver/connect/link_rewriter.h"

#include <gtest/gtest.h>

namespace keelson::apiserver {
namespace {

const ProxyPlace kPlace{"/api/v1/namespaces/n/pods/p/proxy", "10.0.0.7:80", "example.test:6443"};
const std::string kPrefix = kPlace.prefix;

TEST(RewriteLinkTest, OwnPathsAlone) {
  struct Case {
    std::string url, want;
  } cases[] = {{"/", kPrefix + "/"},
               {"/a/b?x=/y#z", kPrefix + "/a/b?x=/y#z"},
               {"/a//b/", kPrefix + "/a/b/"},
               {"http://10.0.0.7:80/a", kPrefix + "/a"},
               {"https://example.test:6443/a/", kPrefix + "/a/"},
               {"//10.0.0.7:80/a", kPrefix + "/a"},
               {kPrefix + "/done", kPrefix + "/done"},
               {"http://elsewhere.test/a", "http://elsewhere.test/a"},
               {"http://10.0.0.7:80", "http://10.0.0.7:80"},
               {"relative/a", "relative/a"},
               {"?x=http://a/b", "?x=http://a/b"},
               {"#top", "#top"},
               {"mailto:a@b", "mailto:a@b"},
               {"", ""}};
  for (const Case& c : cases) EXPECT_EQ(RewriteLink(kPlace, c.url), c.want);
}

struct Page {
  std::string in, out;
};
const Page kPages[] = {
    {R"(<a href="/rewriteme">test</a>)", "<a href=\"" + kPrefix + R"(/rewriteme">test</a>)"},
    {"<A HREF='/x' class=b>", "<A HREF='" + kPrefix + "/x' class=b>"},
    {"<img alt=\"a > b\" src=/i.png>", "<img alt=\"a > b\" src=" + kPrefix + "/i.png>"},
    {"<link rel=x href = \"/s.css\"/>", "<link rel=x href = \"" + kPrefix + "/s.css\"/>"},
    {"<p href=\"/x\">/y</p>", "<p href=\"/x\">/y</p>"},
    {"<!-- <a href=\"/x\"> --><a href='b'>", "<!-- <a href=\"/x\"> --><a href='b'>"},
    {"<script src=\"/s\">if (a<b) f('<a href=\"/x\">')</SCRIPT><a href=\"/y\">",
     "<script src=\"" + kPrefix + "/s\">if (a<b) f('<a href=\"/x\">')</SCRIPT><a href=\"" + kPrefix +
         "/y\">"},
    {"1 < 2 <a href='/it''s'>", "1 < 2 <a href='" + kPrefix + "/it''s'>"},
    {"<!doctype html><a = href>", "<!doctype html><a = href>"},
    {"<a href=\"/cut", "<a href=\"/cut"},
    {"<", "<"},
    {"<!-", "<!-"},
    {"<script>never ends", "<script>never ends"}};

TEST(HtmlRewriterTest, Links) {
  for (const Page& page : kPages) {
    HtmlRewriter rewriter(kPlace);
    std::string out = rewriter.Feed(page.in);
    EXPECT_EQ(out + rewriter.Finish(), page.out);
  }
}

TEST(HtmlRewriterTest, PiecesOfAnySize) {
  for (const Page& page : kPages) {
    for (size_t size : {1, 2, 3, 7}) {
      HtmlRewriter rewriter(kPlace);
      std::string out;
      for (size_t at = 0; at < page.in.size(); at += size) out += rewriter.Feed(page.in.substr(at, size));
      EXPECT_EQ(out + rewriter.Finish(), page.out) << size;
    }
  }
}

TEST(HtmlRewriterTest, HoldsLittle) {
  HtmlRewriter rewriter(kPlace);
  std::string page = "<a " + std::string(1 << 20, 'x');
  size_t said = 0;
  for (size_t at = 0; at < page.size(); at += 4096) said += rewriter.Feed(page.substr(at, 4096)).size();
  EXPECT_GT(said, page.size() / 2);
  EXPECT_EQ(said + rewriter.Finish().size(), page.size());
}

}  // namespace
}  // namespace keelson::apiserver
