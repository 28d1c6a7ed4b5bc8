#include "lib/k8s/schema/formats.h"

#include <gtest/gtest.h>

namespace keelson::k8s {
namespace {

struct Case {
  const char* format;
  std::vector<const char*> good, bad;
};

const Case kCases[] = {
    {"bsonobjectid", {"507f1f77bcf86cd799439011"}, {"507f1f77bcf86cd79943901", "x07f1f77bcf86cd799439011"}},
    {"uri",
     {"http://foo.com", "/path", "https://user:pw@host:80/a%20b?q=x", "mailto:x@y", "http://[::1]:8080/", "*",
      "http://foo.com/?a=b#c", "custom+x://h"},
     {"", "foo.com", "a b", "http://[::1/", "http://host:port/", "http://a%zz/", "/a%2", ":foo"}},
    {"email",
     {"a@b.com", "Barry <bg@example.com>", "\"a b\"@c.d", "a.b+c@d", "a@[192.0.2.1]"},
     {"", "a", "a@", "@b", "a..b@c", "a@b c", "<a@b", "a@b@c"}},
    {"hostname",
     {"example.com", "a", "localhost", "a-bc", "xn--a.b-c.de", "somewhere.london", "www.exämple.com"},
     {"", "-a", "a_b", "a..b", "example.c-", "1.2.3", "ab-c", "a--b.c--d"}},
    {"ipv4", {"1.2.3.4", "::ffff:1.2.3.4"}, {"1.2.3", "1.2.3.256", "01.2.3.4", "::1"}},
    {"ipv6", {"::1", "2001:db8::1", "::ffff:1.2.3.4"}, {"1.2.3.4", ":::", "fe80::1%eth0"}},
    {"cidr", {"10.0.0.0/8", "2001:db8::/32", "10.1.2.3/8"}, {"10.0.0.0", "10.0.0.0/33", "10.0.0/8"}},
    {"mac",
     {"00:00:5e:00:53:01", "02-00-5E-10-00-00-00-01", "0000.5e00.5301"},
     {"00:00:5e:00:53", "00:00:5e-00:53:01"}},
    {"uuid", {"a8098c1a-f86e-11da-bd1a-00112444be1e", "A8098C1AF86E11DABD1A00112444BE1E"}, {"a8098c1a"}},
    {"uuid3", {"bcd02e22-68f0-3046-a512-327cca9def8f"}, {"bcd02e22-68f0-4046-a512-327cca9def8f"}},
    {"uuid4", {"025b0d74-00a2-4048-bf57-227c5111bb34"}, {"025b0d74-00a2-4048-cf57-227c5111bb34"}},
    {"uuid5", {"886313e1-3b8a-5372-9b90-0c9aee199e5d"}, {"886313e1-3b8a-4372-9b90-0c9aee199e5d"}},
    {"isbn", {"0321751043", "978-0321751041"}, {"0321751044"}},
    {"isbn10", {"0321751043", "0-8044-2957-X"}, {"978-0321751041", "0321751042"}},
    {"isbn13", {"978-0321751041"}, {"978-0321751042", "0321751043"}},
    {"creditcard", {"4111-1111-1111-1111", "4111 1111 1111 1111"}, {"4111-1111-1111-1112", "1234"}},
    {"ssn", {"111-11-1111", "111 11 1111"}, {"111111111", "111-11-111"}},
    {"hexcolor", {"#FFFFFF", "fff"}, {"#fffff", "red"}},
    {"rgbcolor", {"rgb(100,100,100)", "rgb( 0 , 255 , 10 )"}, {"rgb(1,2)", "rgb(256,0,0)"}},
    {"byte", {"ZWxpemFiZXRocG9zZXk=", "QQ=="}, {"", "Q", "a b="}},
    {"password", {"", "anything"}, {}},
    {"quantity", {"10Gi", "1.5", "anything"}, {}},
    {"date", {"2014-12-15", "2024-02-29"}, {"2014-13-01", "2023-02-29", "2014-1-1", "2014-12-15T00:00:00Z"}},
    {"date-time",
     {"2014-12-15T19:30:20.000Z", "2014-12-15t19:30:20+02:00", "2014-12-15T19:30:20Z"},
     {"2014-12-15", "2014-12-15T25:00:00Z", "2014-12-15 19:30:20Z", "", "x"}},
    {"duration", {"1h15m", "22 ns", "1.5s", "2 weeks", "0", "3 Hours"}, {"", "h", "1", "five minutes"}},
    {"k8s-short-name", {"abc", "a-1", "1"}, {"", "A", "-a", "a.b"}},
    {"k8s-long-name", {"abc", "a.b.c"}, {"", "A.b", "a..b"}},
    {"foo", {"anything"}, {}},
};

TEST(Formats, TellTextApart) {
  for (const Case& one : kCases) {
    for (const char* text : one.good) EXPECT_TRUE(HasFormat(one.format, text)) << one.format << " " << text;
    for (const char* text : one.bad) EXPECT_FALSE(HasFormat(one.format, text)) << one.format << " " << text;
  }
}

TEST(Formats, AreCheckedByType) {
  EXPECT_TRUE(IsCheckedFormat("date-time", SchemaType::kString));
  EXPECT_TRUE(IsCheckedFormat("date-time", SchemaType::kIntOrString));
  EXPECT_FALSE(IsCheckedFormat("date-time", SchemaType::kInteger));
  EXPECT_FALSE(IsCheckedFormat("made-up", SchemaType::kString));
  EXPECT_TRUE(IsCheckedFormat("int32", SchemaType::kInteger));
  EXPECT_FALSE(IsCheckedFormat("int32", SchemaType::kString));
  EXPECT_TRUE(IsCheckedFormat("double", SchemaType::kNumber));
  EXPECT_FALSE(IsCheckedFormat("uri", SchemaType::kObject));
}

}  // namespace
}  // namespace keelson::k8s
