// Routes survive their file, and a file that is no such thing is refused in one sentence.
#include "journal/routes.hpp"

#include <gtest/gtest.h>

#include "journal_files.hpp"

namespace blockyard::journal::testing {
namespace {

Routes sample_routes() {
  Routes routes;
  routes.events = 100;
  routes.routes = {{.kind = RouteKind::temp, .group = 0, .bytes = 4096},
                   {.kind = RouteKind::block_pool, .alignment_log2 = 6, .group = 1, .bytes = 64}};
  routes.blocks = {{.event = 3, .route = 1}, {.event = 4, .route = 0}, {.event = 99, .route = 1}};
  return routes;
}

class RoutesFile : public ::testing::Test {
 protected:
  std::string sentence(const std::string& bytes) {
    spill(path_, bytes);
    try {
      read_routes(path_, 100);
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }
  std::string refusal(const Routes& routes) {
    try {
      write_routes(routes, path_);
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }
  Folder folder_;
  std::string path_ = folder_ / "a.byr";
};

TEST_F(RoutesFile, is_read_as_it_was_written) {
  const Routes routes = sample_routes();
  write_routes(routes, path_);
  const Routes again = read_routes(path_, 100);
  EXPECT_EQ(again.events, 100U);
  EXPECT_EQ(again.routes, routes.routes);
  EXPECT_EQ(again.blocks, routes.blocks);
}

TEST_F(RoutesFile, has_the_size_and_the_head_that_its_header_file_promises) {
  write_routes(sample_routes(), path_);
  const std::string bytes = slurp(path_);
  EXPECT_EQ(bytes.size(), 40U + 2 * 24 + 3 * 8);
  EXPECT_EQ(bytes.substr(0, 16), std::string("BYROUTE\n\1\0\0\0\2\0\0\0", 16));
}

TEST_F(RoutesFile, without_routes_is_whole) {
  write_routes({.events = 100, .routes = {}, .blocks = {}}, path_);
  EXPECT_TRUE(read_routes(path_, 100).blocks.empty());
}

TEST_F(RoutesFile, of_another_journal_is_refused) {
  write_routes(sample_routes(), path_);
  EXPECT_THROW(read_routes(path_, 101), Error);
}

TEST_F(RoutesFile, that_is_cut_short_or_changed_is_refused_at_every_byte) {
  write_routes(sample_routes(), path_);
  const std::string bytes = slurp(path_);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_NE(sentence(bytes.substr(0, i)), "") << "cut to " << i;
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 0x10);
    EXPECT_NE(sentence(changed), "") << "byte " << i;
  }
}

TEST_F(RoutesFile, that_does_not_exist_is_one_sentence) { EXPECT_THROW(read_routes(folder_ / "none.byr"), Error); }

TEST_F(RoutesFile, is_not_written_when_an_invariant_is_broken) {
  Routes routes = sample_routes();
  routes.blocks[1].event = 3;
  EXPECT_NE(refusal(routes).find("out of order"), std::string::npos);
  routes = sample_routes();
  routes.blocks[2].event = 100;
  EXPECT_NE(refusal(routes).find("event 100"), std::string::npos);
  routes = sample_routes();
  routes.blocks[0].route = 2;
  EXPECT_NE(refusal(routes).find("route 2"), std::string::npos);
  routes = sample_routes();
  routes.routes[0].kind = static_cast<RouteKind>(8);
  EXPECT_NE(refusal(routes).find("unknown kind 8"), std::string::npos);
  routes = sample_routes();
  routes.routes[1].bytes = 0;
  EXPECT_NE(refusal(routes).find("no size"), std::string::npos);
  EXPECT_EQ(folder_.files(), 0U);
}

}  // namespace
}  // namespace blockyard::journal::testing
