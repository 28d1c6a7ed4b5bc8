#include "lib/http/message.h"

#include <gtest/gtest.h>

namespace keelson::http {
namespace {

TEST(Headers, CompareWithoutCaseAndRepeat) {
  Headers headers{{"Accept", "a"}, {"X-Thing", "1"}, {"accept", "b"}};
  EXPECT_EQ(headers.Get("ACCEPT"), "a");
  EXPECT_EQ(headers.All("accept").size(), 2u);
  headers.Set("accept", "c");
  EXPECT_EQ(headers.All("Accept").size(), 1u);
  headers.Remove("x-thing");
  EXPECT_FALSE(headers.Has("X-Thing"));
  EXPECT_EQ(headers.Get("X-Thing"), "");
}

TEST(Query, ParsesAndPrints) {
  Query query = Query::Parse("a=1&b=x+y%2Fz&a=2&flag&empty=&bad=%zz&=v");
  EXPECT_EQ(query.Get("a"), "1");
  EXPECT_EQ(query.All("a").size(), 2u);
  EXPECT_EQ(query.Get("b"), "x y/z");
  EXPECT_TRUE(query.Has("flag"));
  EXPECT_TRUE(query.Has("empty"));
  EXPECT_EQ(query.Get("bad"), "%zz");
  EXPECT_EQ(query.Get("none"), "");
  Query out;
  out.Add("labelSelector", "a in (b,c)");
  out.Add("x", "1+1=2&~");
  EXPECT_EQ(out.ToString(), "labelSelector=a%20in%20%28b%2Cc%29&x=1%2B1%3D2%26~");
  EXPECT_EQ(Query::Parse(out.ToString()).Get("x"), "1+1=2&~");
}

TEST(Query, Bool) {
  for (const char* yes : {"1", "t", "T", "true", "TRUE", "True"}) {
    EXPECT_TRUE(Query::Parse(std::string("v=") + yes).GetBool("v")) << yes;
  }
  for (const char* no : {"0", "f", "false", "yes", "", "tRue"}) {
    EXPECT_FALSE(Query::Parse(std::string("v=") + no).GetBool("v")) << no;
  }
  EXPECT_FALSE(Query().GetBool("v"));
}

}  // namespace
}  // namespace keelson::http
